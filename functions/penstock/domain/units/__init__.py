"""Units: workers and resources, from their order to the proof that they are gone."""
