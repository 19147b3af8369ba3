"""Audits: a lower bound on epsilon that is measured, beside the one that is claimed."""
