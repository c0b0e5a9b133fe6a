// A fast alternative to the coders: writes readings, events and whole Watch replies as JSON into a buffer that the caller owns and
// reuses. The changes of one iteration of the event loop are written once, because the replies to all watchers differ only in `sequence`.
// Writing a reading must not allocate. A test compares the output with that of the coders.
//
//   body:     "changes":[{…},{…}]                                    once per iteration, by `list`
//   message:  {"parameters":{"sequence":17,"time":5,BODY},"continues":true}␀   once per watcher, by `watchReply`

import Protocols

/// The start of a reading, which is the same in all readings of one device.
public struct EncodedDevice: Sendable {
  let bytes: [UInt8]

  /// Encodes the name of the device.
  public init(device: String) {
    var bytes: [UInt8] = []
    bytes.append(ascii: "{\"device\":")
    bytes.append(json: device)
    self.bytes = bytes
  }
}

/// The part of a reading that follows the device and is the same in all readings of one property. It is created once per declared property.
public struct EncodedProperty: Sendable {
  let bytes: [UInt8]

  /// Encodes the name and the unit of the property.
  public init(property: String, unit: String? = nil) {
    var bytes: [UInt8] = []
    bytes.append(ascii: ",\"property\":")
    bytes.append(json: property)
    if let unit {
      bytes.append(ascii: ",\"unit\":")
      bytes.append(json: unit)
    }
    self.bytes = bytes
  }
}

/// Writes the streamed parts of replies.
public enum ReadingWriter {
  /// Writes one reading. A value or age that is not finite is omitted, as in `Contract.Reading`.
  @inline(__always)
  public static func reading(
    _ device: EncodedDevice, _ property: EncodedProperty, value: Value?, time: Int? = nil, age: Double? = nil, reason: String? = nil,
    to out: inout [UInt8]
  ) {
    var reason = reason
    var number = value
    out.append(contentsOf: device.bytes)
    out.append(contentsOf: property.bytes)
    switch value {
    case .string, .list:
      number = nil
      text(value, to: &out)
    case .float(let float) where !float.isFinite:
      number = nil
      reason = reason ?? "not a number"
    default: break
    }
    out.append { writer in
      switch number {
      case .int(let number):
        writer.write(",\"value\":{\"int\":")
        writer.write(number)
        writer.write(UInt8(ascii: "}"))
      case .float(let number):
        writer.write(",\"value\":{\"float\":")
        writer.write(number)
        writer.write(UInt8(ascii: "}"))
      case .bool(let flag): writer.write(flag ? ",\"value\":{\"bool\":true}" : ",\"value\":{\"bool\":false}")
      default: break
      }
      if let time {
        writer.write(",\"time\":")
        writer.write(time)
      }
      if let age, age.isFinite {
        writer.write(",\"age\":")
        writer.write(age)
      }
      if reason == nil { writer.write(UInt8(ascii: "}")) }
    }
    if let reason {
      out.append(ascii: ",\"reason\":")
      out.append(json: reason)
      out.append(UInt8(ascii: "}"))
    }
  }

  /// Writes one event.
  public static func event(device: String, name: String, text: String, time: Int, to out: inout [UInt8]) {
    out.append(ascii: "{\"device\":")
    out.append(json: device)
    out.append(ascii: ",\"name\":")
    out.append(json: name)
    out.append(ascii: ",\"text\":")
    out.append(json: text)
    out.append(ascii: ",\"time\":")
    out.append(json: time)
    out.append(UInt8(ascii: "}"))
  }

  /// Writes a named list, `"changes":[…]`: `body` writes the elements, with `separate` before each.
  @inline(__always)
  public static func list(_ name: StaticString, to out: inout [UInt8], _ body: (inout [UInt8]) -> Void) {
    if let last = out.last, last == UInt8(ascii: "]") { out.append(UInt8(ascii: ",")) }  // after another list
    out.append(UInt8(ascii: "\""))
    out.append(ascii: name)
    out.append(ascii: "\":[")
    body(&out)
    out.append(UInt8(ascii: "]"))
  }

  /// Writes a comma, except at the start of a list.
  @inline(__always)
  public static func separate(_ out: inout [UInt8]) {
    if out.last != UInt8(ascii: "[") { out.append(UInt8(ascii: ",")) }
  }

  /// Writes a whole Watch reply (with its NUL) around a body of lists; without a body, the reply is a heartbeat.
  @inline(__always)
  public static func watchReply(sequence: Int, time: Int, body: [UInt8] = [], to out: inout [UInt8]) {
    out.append(ascii: "{\"parameters\":{\"sequence\":")
    out.append(json: sequence)
    out.append(ascii: ",\"time\":")
    out.append(json: time)
    if !body.isEmpty { out.append(UInt8(ascii: ",")) }
    out.append(contentsOf: body)
    out.append(ascii: "},\"continues\":true}\0")
  }

  /// Writes a whole reply (with its NUL) around a body of lists, as for Get: `"readings":[…]`.
  @inline(__always)
  public static func reply(body: [UInt8], to out: inout [UInt8]) {
    out.append(ascii: "{\"parameters\":{")
    out.append(contentsOf: body)
    out.append(ascii: "}}\0")
  }

  private static func text(_ value: Value?, to out: inout [UInt8]) {
    switch value {
    case .string(let text):
      out.append(ascii: ",\"value\":{\"string\":")
      out.append(json: text)
      out.append(UInt8(ascii: "}"))
    case .list(let texts):
      out.append(ascii: ",\"value\":{\"list\":[")
      for text in texts {
        separate(&out)
        out.append(json: text)
      }
      out.append(ascii: "]}")
    default: break
    }
  }
}
