"""The experiments of Campbell and Beronov (2019), each by one command: `corebayes reproduce`."""
