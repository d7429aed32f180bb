"""The commands of the command line, by what they are for. Each parses, calls and prints."""
