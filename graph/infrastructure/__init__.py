"""A model's tables, buckets and rights as templates of CloudFormation and Terraform; nothing is sent."""
