"""Where the rows are; `corebayes.rows` is the door to them."""
