"""The pass over the rows: what it may be asked, and who answers: threads, processes, Dask."""
