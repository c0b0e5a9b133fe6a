// Topics, aliases, the URL of the broker, and payloads.

import Protocols
import Testing

@testable import vehicled_mqtt

@Suite("Topics and payloads") struct TopicTests {
  @Test func `commands are recognised by their topics`() throws {
    let topics = Topics(prefix: "home/cars", host: "pi")
    let set = try #require(topics.command("home/cars/mirror/led/set"))
    #expect(set == ("mirror", "led", false))
    #expect(topics.command("home/cars/ev/refresh/do")?.isAction == true)
    for topic in ["home/cars/ev/led", "home/cars/ev/led/x/set", "home/ev/led/set", "cars/ev/led/set", "", "home/cars/set"] {
      #expect(topics.command(topic) == nil, "\(topic)")
    }
    #expect(topics.status == "home/cars/pi/status" && topics.commandFilters == ["home/cars/+/+/set", "home/cars/+/+/do"])
  }

  @Test func `a topic gets an alias when it is published again`() {
    var aliases = TopicAliases(limit: 2)
    #expect(aliases.alias(of: "a") == nil && aliases.alias(of: "b") == nil)
    #expect(aliases.alias(of: "a")! == (1, true))
    #expect(aliases.alias(of: "a")! == (1, false))
    #expect(aliases.alias(of: "b")! == (2, true))
    #expect(aliases.alias(of: "c") == nil && aliases.alias(of: "c") == nil, "the broker accepts only two")
    var none = TopicAliases(limit: 0)
    #expect(none.alias(of: "a") == nil && none.alias(of: "a") == nil)
  }

  @Test(arguments: [
    ("mqtt://broker", "broker", 1883), ("mqtts://broker", "broker", 8883), ("mqtt://10.0.0.1:1884/", "10.0.0.1", 1884),
    ("mqtts://[fd00::1]:8884", "fd00::1", 8884), ("mqtt://[::1]", "::1", 1883),
  ])
  func `URLs of brokers`(_ text: String, _ host: String, _ port: Int) throws {
    let url = try BrokerURL(text)
    #expect(url.host == host && url.port == port)
  }

  @Test(arguments: [
    "broker", "http://broker", "mqtt://", "mqtt://a:0", "mqtt://a:70000", "mqtt://user:x@broker", "mqtt://a b", "mqtt://[::1]x",
  ])
  func `invalid URLs of brokers`(_ text: String) { #expect(throws: ValueError.self) { try BrokerURL(text) } }

  @Test func `values are rounded to their resolution`() {
    #expect(PayloadText.value(.float(13.804999), unit: "V") == "13.8")
    #expect(PayloadText.value(.float(72.5), unit: "%") == "72.5")
    #expect(PayloadText.value(.float(1.0 / 3), unit: nil) == "0.3333333333333333")
    #expect(PayloadText.value(.float(-0.04), unit: "A") == "0")
    #expect(PayloadText.value(.int(-3), unit: "rpm") == "-3" && PayloadText.value(.bool(true), unit: nil) == "true")
    #expect(PayloadText.value(.list(["P0420", "P0301"]), unit: nil) == "P0420,P0301" && PayloadText.value(nil, unit: "V") == "None")
    let reading = CurrentReading(value: nil, reason: "stale", time: 1_774_701_296_000_000)
    #expect(PayloadText.attributes(reading, unit: "V") == #"{"time":"2026-03-28T12:34:56Z","unit":"V","reason":"stale"}"#)
  }
}
