"""The command line: `corebayes build | sample | certify | report | reproduce | demo`."""
