// Calls and replies: which calls are accepted, close the connection, or are answered with InvalidParameter.

import Testing

@testable import Protocols
@testable import Varlink

@Suite struct CallTests {
  func call(_ text: String) throws -> VarlinkCall { try VarlinkCall(Array(text.utf8)) }

  @Test(arguments: [
    #"{"method":"io.vehicled.Get","parameters":{"references":["ev.rpm"]}}"#,
    #"{"parameters":{"references":["ev.rpm"]},"more":false,"oneway":false,"upgrade":false,"method":"io.vehicled.Get"}"#,
    " {\n\"method\" : \"io.vehicled.Get\", \"more\": null, \"parameters\" : { \"references\" : [ \"ev.rpm\" ] } } ",
    #"{"method":"io.vehicled.Get","parameters":{"\u0072eferences":["ev.rpm"]}}"#,
  ]) func `well-formed calls are accepted`(_ text: String) throws {
    let call = try call(text)
    #expect(call.method == "io.vehicled.Get")
    #expect(!call.more && !call.oneway)
    #expect(try call.parameters(as: Contract.Get.Parameters.self).references == ["ev.rpm"])
  }

  @Test(arguments: [#"{"method":"a.B"}"#, #"{"method":"a.B","parameters":null}"#, #"{"method":"a.B","parameters":{}}"#])
  func `parameters may be absent, null or empty`(_ text: String) throws {
    #expect(try call(text).parameters(as: Contract.AnyDevice.self).device == nil)
    #expect(try call(text).parameters(as: NoParameters.self) == NoParameters())
    #expect(throws: ContractError.invalidParameter(parameter: "device")) { try call(text).parameters(as: Contract.OneDevice.self) }
  }

  @Test func `flags are parsed`() throws {
    #expect(try call(#"{"method":"a.B","more":true}"#).more)
    #expect(try call(#"{"method":"a.B","oneway":true,"parameters":{}}"#).oneway)
  }

  @Test(arguments: [
    "", "x", "3", "null", "[]", #""method""#, "{", "}", "{}", "{}{}", #"{"method":"a.B"}}"#, #"{"method":"a.B"} x"#, #"{"method":3}"#,
    #"{"method":null}"#, #"{"method":"a.B","more":1}"#, #"{"method":"a.B","more":"true"}"#, #"{"method":"a.B","more":{}}"#,
    #"{"method":"a.B","oneway":[]}"#, #"{"method":"a.B","more":true,"oneway":true}"#, #"{"method":"a.B","upgrade":true}"#,
    #"{"method":"a.B","extra":1}"#, #"{"method":"a.B","method":"c.D"}"#, #"{"method":"a.B","more":true,"more":true}"#,
    #"{"method":"a.B","parameters":{},"parameters":{}}"#, #"{"method":"a.B","parameters":[]}"#, #"{"method":"a.B","parameters":3}"#,
    #"{"method":"a.B","parameters":"{}"}"#, #"{"method":"a.B","parameters":{}"#, #"{"method":"a.B",}"#, #"{"method" "a.B"}"#,
    #"{"method":"a.B","extra":{}}"#, #"{"method":"a.B","parameters":{"x":1,"x":2}}"#, #"{"method":"a.B","parameters":{"x":1,"\u0078":2}}"#,
    #"{"method":"a.B","parameters":{"x":[{"y":{},"y":{}}]}}"#,
  ]) func `a malformed call closes the connection`(_ text: String) {
    #expect(throws: VarlinkViolation.self) { try call(text) }
  }

  @Test func `deep nesting is rejected before it is parsed`() {
    let deep = String(repeating: "[", count: 100_000)
    #expect(throws: VarlinkViolation.self) { try call(#"{"method":"a.B","parameters":{"x":"# + deep) }
    #expect(throws: VarlinkViolation.self) {
      try call(#"{"method":"a.B","parameters":{"x":"# + deep + String(repeating: "]", count: 100_000) + "}}")
    }
  }

  @Test(arguments: [
    (#"{}"#, "device"), (#"{"device":3,"property":"p","value":{"int":1}}"#, "device"), (#"{"device":"d","value":{"int":1}}"#, "property"),
    (#"{"device":"d","property":"p","value":{"int":1},"leese":"x"}"#, "leese"), (#"{"device":"d","property":"p","value":7}"#, "value"),
    (#"{"device":"d","property":"p","value":{}}"#, "value"), (#"{"device":"d","property":"p","value":{"int":1,"float":1}}"#, "value"),
    (#"{"device":"d","property":"p","value":{"integer":1}}"#, "value"), (#"{"device":"d","property":"p","value":{"int":1.5}}"#, "value"),
    (#"{"device":"d","property":"p","value":{"list":[1]}}"#, "value"), (#"{"device":null,"property":"p","value":{"int":1}}"#, "device"),
    (#"{"device":"d","property":"p","value":{"float":1e999}}"#, "value"),
    (#"{"device":"d","property":"p","value":{"int":9223372036854775808}}"#, "value"),
  ]) func `an invalid parameter is named in the error`(_ parameters: String, _ name: String) throws {
    let call = try call(#"{"method":"io.vehicled.Set","parameters":\#(parameters)}"#)
    #expect(throws: ContractError.invalidParameter(parameter: name)) { try call.parameters(as: Contract.Set.Parameters.self) }
  }

  @Test(arguments: ["1.5", "true", "[]", "1e40"]) func `an invalid integer parameter is named in the error`(_ number: String) throws {
    let call = try call(#"{"method":"x.Watch","parameters":{"references":["a"],"minimumIntervalMilliseconds":\#(number)}}"#)
    let expected = ContractError.invalidParameter(parameter: "minimumIntervalMilliseconds")
    #expect(throws: expected) { try call.parameters(as: Contract.Watch.Parameters.self) }
  }

  @Test(arguments: [
    (#"{"int":-3}"#, Value.int(-3)), (#"{"float":3}"#, .float(3)), (#"{"bool":true}"#, .bool(true)),
    (#"{"string":"a\u0000b"}"#, .string("a\0b")),
    (#"{"list":["a",""]}"#, .list(["a", ""])), (#"{"int":1,"float":null}"#, .int(1)),
  ]) func `values have exactly one field`(_ text: String, _ value: Value) throws {
    let call = try call(#"{"method":"io.vehicled.Set","parameters":{"device":"d","property":"p","value":\#(text)}}"#)
    #expect(try call.parameters(as: Contract.Set.Parameters.self).value == value)
  }

  @Test func `an encoded call decodes to the same parameters`() throws {
    let parameters = Contract.Call.Parameters(device: "ev", action: "query", arguments: ["request": .string("010C"), "n": .int(3)])
    let bytes = try VarlinkCall.message(Contract.Call.self, parameters, more: true)
    #expect(bytes.last == 0)
    let call = try VarlinkCall(Array(bytes.dropLast()))
    #expect(call.method == "io.vehicled.Call" && call.more && !call.oneway)
    #expect(try call.parameters(as: Contract.Call.Parameters.self) == parameters)
  }

  @Test func `replies have exactly the keys of the interface`() throws {
    func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
    #expect(text(VarlinkReply.empty) == "{\"parameters\":{}}\0")
    let reading = Contract.Reading(device: "ev", property: "rpm", reason: "a/b")
    let more = VarlinkReply.message(Contract.Watch.Result(sequence: 3, changes: [reading]), continues: true)
    let reply = try VarlinkReply(Array(more.dropLast()))
    #expect(reply.continues && reply.error == nil)
    #expect(try reply.parameters(as: Contract.Watch.Result.self).changes == [reading])
    #expect(text(more).contains("\"a/b\"") && !text(more).contains("null") && !text(more).contains("snapshot"))
    let error = VarlinkReply.message(.noSuchProperty(device: nil, property: "x"))
    #expect(!text(error).contains("continues") && !text(error).contains("device"))
  }

  @Test func `numbers that JSON cannot represent are absent`() throws {
    let reading = Contract.Reading(device: "ev", property: "x", value: .float(.nan), age: .infinity)
    #expect(reading.value == nil && reading.age == nil && reading.reason == "not a number")
    let report = Contract.Call.Result(Report(progress: .nan))
    #expect(VarlinkReply.message(report) == VarlinkReply.empty)
    let property = Property("x", .float, range: 0 ... .infinity, help: "")
    #expect(Contract.Property(property).maximum == nil && Contract.Property(property).minimum == 0)
    let below = Property("x", .float, range: -.infinity...5, help: "")
    #expect(Contract.Property(below).minimum == nil && Contract.Property(below).maximum == 5)
  }
}
