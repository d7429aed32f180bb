"""How the claims of rbve.paper.claims are judged: effects, rules, verdicts."""
