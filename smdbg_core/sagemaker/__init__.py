"""SageMaker's JSON, in and out, and the drop-in for its rule configurations."""
