# Talks to a daemon that polls one car named `ev` through the PyPI `varlink` package, as an integrator would: no line of
# this knows more of the daemon than its socket. Prints one line per thing that holds; fails on the first that does not.
import itertools
import sys

import varlink

client = varlink.Client(address="unix:" + sys.argv[1])
info = client.get_interfaces()
assert set(client.get_interfaces()) == {"org.varlink.service", "io.vehicled"}, info
text = client.get_interface("io.vehicled").get_description()
assert text == open(sys.argv[2]).read(), "the description is not the contract"
print("introspection")

with client.open("io.vehicled") as vehicled:
    status = vehicled.Status()["devices"]
    assert [device["name"] for device in status] == ["ev"]
    assert status[0]["kind"] == "obd" and status[0]["links"][0]["state"] == "up", status[0]
    print("status")
    (reading,) = vehicled.Get(["ev.battery-voltage"])["readings"]
    assert 500 < reading["value"]["float"] < 900 and reading["unit"] == "V", reading
    print("get")
    (schema,) = vehicled.Describe("ev")["schemas"]
    assert "rpm" in [row["name"] for row in schema["properties"]] and "query" in [row["name"] for row in schema["actions"]]
    print("describe")
    answer = vehicled.Call("ev", "query", {"request": {"string": "ATRV"}}, None)
    assert answer["rows"], answer
    print("call")
    for call, error, parameters in [
        (lambda: vehicled.Get(["ev.rpx"]), "NoSuchProperty", {"device": "ev", "property": "rpx"}),
        (lambda: vehicled.Get(["bus.rpm"]), "NoSuchDevice", {"device": "bus"}),
        (lambda: vehicled.Set("ev", "rpm", {"int": 1}, None), "ReadOnly", {"device": "ev", "property": "rpm"}),
        (lambda: vehicled.Call("ev", "fly", None, None), "NoSuchAction", {"device": "ev", "action": "fly"}),
    ]:
        try:
            call()
            raise AssertionError(error + " expected")
        except varlink.VarlinkError as caught:
            assert caught.error() == "io.vehicled." + error, caught.error()
            assert caught.parameters() == parameters, caught.parameters()
    print("errors")

with client.open("io.vehicled") as vehicled:
    replies = list(itertools.islice(vehicled.Watch(["ev.polls", "ev.rpm"], None, _more=True), 20))
    assert [reply["sequence"] for reply in replies] == list(range(20)), replies
    assert replies[0]["snapshot"][0]["name"] == "ev"
    polls = [reading["value"]["int"] for reply in replies[1:] for reading in reply.get("changes") or [] if reading["property"] == "polls"]
    assert polls == sorted(polls) and len(polls) >= 1, polls
    print("watch")

with client.open("io.vehicled") as vehicled:
    lines = [reply["line"] for reply in itertools.islice(vehicled.Record("ev", _more=True), 5)]
    assert '"format":1' in lines[0] and '"hex"' in lines[-1], lines
    print("record")

with client.open("io.vehicled") as vehicled:
    vehicled.Disconnect("ev", _oneway=True)
    assert vehicled.Status("ev")["devices"][0]["links"][0]["state"] == "down"
    vehicled.Connect("ev")
    assert vehicled.Reload()["changed"] == []
    print("connect")
