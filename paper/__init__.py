"""The paper's figures and tables: one module an artefact, named as its output."""
