"""Tables are made and changed to what the model says: what is there, the plan, and the plan carried out."""
