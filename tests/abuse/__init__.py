"""What nobody should send, and what it is answered: the rows of docs/abusive-inputs.md, by kind."""
