"""Agents: networks, `act_batch`, `update`, `state_dict`. No environment and no files in here."""
