"""One file for each contender; `benchmarks.roster` lists them."""
