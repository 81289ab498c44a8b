"""The command line: `corebayes build | update | merge | refit | sample | certify | report | …`."""
