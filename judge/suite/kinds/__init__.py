"""How a case of each kind is decided: one module each, with what it expects in short and what was found."""
