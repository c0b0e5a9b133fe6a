// The JSON parser: accepted and rejected texts, agreement with FoundationEssentials, and linear time.

import FoundationEssentials
import Testing

@testable import Protocols
@testable import Varlink

@Suite struct JSONTests {
  @Test(arguments: [
    "null", "true", "false", "0", "-0", "7", "-9223372036854775808", "9223372036854775807", "1.5", "-2.5e-3", "1e+30", #""""#,
    #""a\"\\\/b""#,
    #""\b\f\n\r\t\u0000\u00e9\ud83d\ude97""#, #""é漢🚗""#, "[]", "[ 1 , [ ] ,{} ]", "{}", #"{ "a" : 1 , "" : [null] }"#, "\t\r\n 1 \n",
    String(repeating: "[", count: 32) + String(repeating: "]", count: 32),
  ]) func `valid JSON is parsed`(_ text: String) throws {
    let value = try #require(JSON(text))
    #expect(try Loose(text) == Loose(value))
    #expect(JSON(value.text) == value)
  }

  @Test(arguments: [
    "", " ", "nul", "nulll", "True", "+1", "01", "-", "-01", ".5", "1.", "1.e3", "1e", "1e+", "0x1", "NaN", "Infinity", "'a'", #"""#,
    #""\""#, #""\x""#,
    #""\u12""#, #""\u12g4""#, #""\ud800""#, #""\udc00""#, #""\ud800\u0041""#, #""\ud800x""#, "\"a\nb\"", "\"a\u{1}b\"", "[", "]", "[1",
    "[1,", "[1,]", "[,1]", "[1 2]",
    "{", "}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,"a":1}"#, #"{a:1}"#, #"{1:1}"#, #"{"a" 1}"#, #"{"a":1 "b":2}"#, #"{"a":1,"a":1}"#,
    #"{"é":1,"\u00e9":1}"#,
    "1 2", "{}{}", "{},", "1e999", "-1e999", "\u{feff}1", "[1}", "// 1\n1",
    String(repeating: "[", count: 33) + String(repeating: "]", count: 33),
  ]) func `invalid JSON is rejected`(_ text: String) {
    #expect(JSON(text) == nil)
  }

  @Test(arguments: ["[", #"{"a":"#]) func `unlimited nesting is rejected`(_ piece: String) {
    #expect(JSON(String(repeating: piece, count: 100_000)) == nil)
  }

  @Test(
    arguments: [
      [0x22, 0xff, 0x22], [0x22, 0xc3, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22], [0x22, 0xc0, 0x80, 0x22], [0x22, 0x5c], [0x22, 0x5c, 0x75],
    ] as [[UInt8]])
  func `strings that are not UTF-8 or are truncated are rejected`(_ bytes: [UInt8]) {
    #expect(throws: JSONSyntax.self) { try bytes.withUnsafeBytes { try JSONNode($0) } }
  }

  @Test func `numbers are converted to the requested type`() throws {
    func int(_ text: String) throws -> Int? { try Array(text.utf8).withUnsafeBytes { try JSONDocument($0).int(0) } }
    #expect(try int("70.0") == 70 && int("7e2") == 700 && int("-0") == 0)
    #expect(try int("70.5") == nil && int("1e30") == nil && int("9223372036854775808") == nil && int("-9223372036854775809") == nil)
    #expect(JSON("-9223372036854775808") == .int(.min) && JSON("9223372036854775808") == .float(0x1p63) && JSON("1.0") == .float(1))
  }

  @Test func `the members of objects keep their order`() {
    #expect(JSON(#"{"b":1,"a":{"d":2,"c":3}}"#)?.text == #"{"b":1,"a":{"d":2,"c":3}}"#)
    let members: JSON = .members(["x": nil, "b": .int(1), "a": .int(2)])
    #expect(members.text == #"{"b":1,"a":2}"#)
  }

  @Test func `large objects are parsed in linear time`() throws {
    let text = "{" + (0..<40_000).map { #""k\#($0)":{"int":\#($0)}"# }.joined(separator: ",") + "}"
    let message = #"{"method":"io.vehicled.Call","parameters":{"device":"d","action":"a","arguments":\#(text)}}"#
    let time = try cpuTime {
      let call = try VarlinkCall(Array(message.utf8))
      let arguments = try call.parameters(as: Contract.Call.Parameters.self).arguments
      #expect(arguments?.count == 40_000)
      #expect(JSON(text)?["k39999"] != nil)
      #expect(JSON(text.dropLast() + #","k17":1}"#) == nil)
    }
    #expect(time < .seconds(10))  // quadratic time would take minutes
  }

  /// Decoding escaped keys again for each comparison took 0.7 s for 1 MiB.
  @Test func `small objects with escaped keys are parsed in linear time`() throws {
    /// The cost of the same number of keys, in objects of this size.
    func time(keysPerObject count: Int) throws -> Duration {
      let object = "{" + (0..<count).map { #""\u006b\u0065y_\#($0)":0"# }.joined(separator: ",") + "}"
      let objects = repeatElement(object, count: 62_000 / count).joined(separator: ",")
      return try cpuTime { _ = try VarlinkCall(Array(#"{"method":"a.B","parameters":{"x":[\#(objects)]}}"#.utf8)) }
    }
    #expect(try time(keysPerObject: 31) < time(keysPerObject: 2) * 4)
  }

  @Test(arguments: [
    #"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"a":1}"#, #"{"\u0061":1,"b":2,"a":3}"#, #"{"a":1,"b":2,"\u0061":3}"#,
    #"{"\ud83d\ude97":1,"🚗":2}"#, #"{"":1,"x":{},"":2}"#,
  ]) func `a duplicate key is rejected in every notation`(_ text: String) {
    #expect(JSON(text) == nil)
    #expect(JSON(text.replacing("1,", with: #"1,"z":{"a":1},"#)) == nil)
  }

  @Test func `keys are compared by their code points`() {
    #expect(JSON(#"{"é":1,"e\u0301":2}"#) == .object([.init(key: "é", value: .int(1)), .init(key: "e\u{301}", value: .int(2))]))
  }

  @Test func `mutated texts are accepted only if FoundationEssentials accepts them, with the same value`() throws {
    var random = Seeded(state: 3)
    let seeds = [#"{"a":[1,-2.5e3,true,null,"x\n\u00e9"],"b":{"c":"\ud83d\ude97é","d":{}}}"#, "[[],[[1]],{\"a\":0}]", #""\\\"""#].map {
      Array($0.utf8)
    }
    let pieces = ["{", "}", "[", "]", "\"", "\\", ":", ",", "\\ud800", "1e9", "-", "0", ".", "null", "\u{feff}", "\"a\":", "\u{1}"].map {
      Array($0.utf8)
    }
    var accepted = 0
    for _ in 0..<8000 {
      var bytes = seeds[Int(random.next() % 3)]
      for _ in 0...random.next() % 3 where !bytes.isEmpty {
        let at = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 4 {
        case 0: bytes[at] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.remove(at: at)
        case 2: bytes.insert(contentsOf: pieces[Int(random.next() % UInt64(pieces.count))], at: at)
        default: bytes.swapAt(at, Int(random.next() % UInt64(bytes.count)))
        }
      }
      guard let text = String(validating: bytes, as: UTF8.self), let parsed = JSON(text) else { continue }
      #expect(try Loose(text) == Loose(parsed), "\(text)")
      accepted += 1
    }
    #expect(accepted > 500)
  }
}

/// JSON parsed by FoundationEssentials, and the result of the project's parser in the same form.
private enum Loose: Decodable, Equatable {
  case null, bool(Bool), number(Double), string(String), array([Loose]), object([String: Loose])

  init(_ text: String) throws { self = try JSONDecoder().decode(Loose.self, from: Data(text.utf8)) }

  init(_ parsed: JSON) {
    self =
      switch parsed {
      case .null: .null
      case .bool(let value): .bool(value)
      case .int(let value): .number(Double(value))
      case .float(let value): .number(value)
      case .string(let value): .string(value)
      case .array(let values): .array(values.map { Loose($0) })
      case .object(let members): .object(Dictionary(members.map { ($0.key, Loose($0.value)) }) { $1 })
      }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([Loose].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: Loose].self))
    }
  }
}
