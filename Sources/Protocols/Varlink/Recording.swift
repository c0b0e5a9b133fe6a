// The form of recordings: NDJSON, a header line, then a line for every message of a link. It is what `Record` streams,
// what `record = true` keeps, what `replay:` plays, and what the tests are made of.
//
//   {"format":1,"kind":"obd","device":"ev","date":"2026-01-31T12:00:00Z"}
//   {"t":1200000,"link":"main","dir":"tx","hex":"3232303130310D"}
//   {"t":1800000,"link":"main","dir":"state","text":"down: unplugged"}

import FoundationEssentials

/// A recording: whose it is, and what went over the links.
public struct Recording: Sendable {
  /// The first line of a recording.
  public struct Header: Codable, Sendable, Equatable {
    /// 1.
    public var format: Int
    public var kind: String
    public var device: String
    /// ISO 8601, UTC.
    public var date: String
    /// Where a vendored capture comes from.
    public var source: String?

    /// The header of a recording of this device.
    public init(kind: String, device: String, date: String, source: String? = nil) {
      format = 1
      self.kind = kind
      self.device = device
      self.date = date
      self.source = source
    }
  }

  /// The direction of a line, seen from the daemon.
  public enum Direction: String, Codable, Sendable {
    case received = "rx"
    case sent = "tx"
    case state
  }

  /// One message, or one change of a link's state.
  public struct Line: Codable, Sendable, Equatable {
    /// Nanoseconds since the recording began.
    public var t: Int64
    public var link: String
    public var dir: Direction
    public var hex: String?
    /// The state, for `dir` state; `secret: 16 bytes` in place of a secret message.
    public var text: String?

    /// The message, where the line has one in valid hex.
    public var bytes: [UInt8]? {
      guard let digits = hex?.utf8, digits.count % 2 == 0 else { return nil }
      var bytes: [UInt8] = []
      var high: UInt8?
      for digit in digits {
        guard let value = nibble(digit) else { return nil }
        if let first = high {
          bytes.append(first << 4 | value)
          high = nil
        } else {
          high = value
        }
      }
      return bytes
    }
  }

  public var header: Header
  public var lines: [Line]

  /// Reads a recording, or says which line is wrong. A last line that was not written to its end is left out.
  public init(parsing text: [UInt8]) throws(ValueError) {
    var header: Header?
    var lines: [Line] = []
    let decoder = JSONDecoder()
    let all = text.split(separator: UInt8(ascii: "\n"))
    let isTorn = text.last != UInt8(ascii: "\n")
    for (number, line) in all.enumerated() {
      do {
        if header == nil {
          header = try decoder.decode(Header.self, from: Data(line))
        } else {
          lines.append(try decoder.decode(Line.self, from: Data(line)))
        }
      } catch {
        if isTorn, header != nil, number == all.count - 1 { break }
        throw ValueError("line \(number + 1) is not a \(header == nil ? "recording's header" : "line of a recording")")
      }
    }
    guard let header, header.format == 1 else { throw ValueError("it is not a recording of format 1") }
    self.header = header
    self.lines = lines
  }

  /// The header line, without the newline.
  public static func text(_ header: Header) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(header)).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  /// A message's line, without the newline. `link` is a link's name and needs no escaping.
  public static func text(_ t: Int64, link: String, _ direction: Direction, bytes: [UInt8]) -> String {
    var digits: [UInt8] = []
    digits.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      digits.append(digit(byte >> 4))
      digits.append(digit(byte & 15))
    }
    return #"{"t":\#(t),"link":"\#(link)","dir":"\#(direction.rawValue)","hex":"\#(String(decoding: digits, as: UTF8.self))"}"#
  }

  /// A line without a message: a state, or that a secret was sent.
  public static func text(_ t: Int64, link: String, _ direction: Direction, note: String) -> String {
    let line = Line(t: t, link: link, dir: direction, hex: nil, text: note)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(line)).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }
}

private func nibble(_ digit: UInt8) -> UInt8? {
  switch digit {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
  case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
  case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
  default: nil
  }
}
