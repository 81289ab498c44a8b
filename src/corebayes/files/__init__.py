"""Writing files: whole or not at all, tried before the work, kept elsewhere when it fails."""
