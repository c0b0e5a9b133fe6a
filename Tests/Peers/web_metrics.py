"""Reads /metrics of vehicled-web with Prometheus' own client library."""
import sys, time

from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = {family.name: family for family in text_string_to_metric_families(sys.stdin.read())}
(sample,) = families["vehicle_battery_voltage_volts"].samples
assert sample.labels == {"device": "ev"} and 200 < sample.value < 900, sample
assert 0 <= time.time() - float(sample.timestamp) < 10, sample
assert families["vehicled_calls"].type == "counter"
assert all(sample.timestamp is None for family in families.values() if family.name.startswith("vehicled_") for sample in family.samples)
