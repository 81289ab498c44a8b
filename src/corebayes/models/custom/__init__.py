"""Models of a person's own: plain functions, differentiated by JAX or by differences."""
