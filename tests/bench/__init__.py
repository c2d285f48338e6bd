"""The benchmark against restic and borg, which makes spec/benchmarks.md.

Measures, stores and shows; decides nothing for the product and changes nothing in it.
`programs` says what is called, `corpora` what is backed up, `rounds` in which order, `rows` what
is compared with which target, `table` what is written. Start at `__main__`; tests/README.md says
how to run it.
"""
