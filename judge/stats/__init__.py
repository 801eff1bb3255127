"""What the numbers support: table to estimates. Seeded; every estimate names its method."""
