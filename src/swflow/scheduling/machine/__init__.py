"""Machine models: counted processors, numbered processors, and nodes whose jobs share resources."""
