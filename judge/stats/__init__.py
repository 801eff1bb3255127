"""What the numbers support: table to estimates. numpy only, seeded, every estimate names its method."""
