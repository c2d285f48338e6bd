"""Keys, seals and signatures. `primitives` is the only importer of the cryptography package."""
