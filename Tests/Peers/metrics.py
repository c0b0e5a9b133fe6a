"""Reads `vehiclectl metrics` with Prometheus' own client library, as OpenMetrics and as the text format of node_exporter's collector."""
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as textfile

text = sys.stdin.read()
families = {family.name: family for family in openmetrics(text)}
for family in families.values():
    assert all(sample.timestamp is None for sample in family.samples), "the collector refuses times"
    if family.unit:
        assert family.name.endswith("_" + family.unit), family.name
plain = {sample.name: sample.value for family in textfile(text) for sample in family.samples}
assert plain["vehicled_calls_total"] >= 1
(sample,) = families["vehicle_battery_voltage_volts"].samples
assert sample.labels == {"device": "ev"} and 200 < sample.value < 900, sample
assert families["vehicled_calls"].type == "counter" and families["vehicled_memory_resident_bytes"].samples[0].value > 1e6
received = families["vehicled_link_received_bytes"].samples[0]
assert received.labels == {"device": "ev", "link": "main"} and received.value > 100, received
print(len(families))
