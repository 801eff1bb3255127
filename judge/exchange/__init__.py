"""Between whoever has something to ask and whoever answers: whose request it is, and when its reply is kept."""
