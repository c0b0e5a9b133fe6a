// The format of recordings: NDJSON with one header line, then one line per message of a link. The method `Record` streams a recording,
// `record = true` stores one, `replay:` plays one, and many tests use recordings.
//
//   {"format":1,"kind":"obd","device":"ev","date":"2026-01-31T12:00:00Z","start":1769860800000000}
//   {"t":1200000,"link":"main","dir":"tx","hex":"3232303130310D"}
//   {"t":1800000,"link":"main","dir":"state","text":"down: unplugged"}

import FoundationEssentials
import Protocols

/// A recording: a header, and the messages of the device's links.
public struct Recording: Sendable {
  /// The first line of a recording.
  public struct Header: Codable, Sendable, Equatable {
    /// The version of the format: 1.
    public var format: Int
    public var kind: String
    public var device: String
    /// When it was requested: ISO 8601, UTC.
    public var date: String
    /// When its times count from, in µs since the Unix epoch. This is before `date` if the recording contains the opening of a link. Absent
    /// in recordings of version 0.1.
    public var start: Int64?
    /// The source of a vendored capture.
    public var source: String?
    /// How the messages contain frames of a CAN bus: `slcan` or `socketcan`; absent if they contain none.
    public var frames: String?

    public init(kind: String, device: String, date: String, start: Int64? = nil, source: String? = nil, frames: String? = nil) {
      format = 1
      self.start = start
      self.frames = frames
      self.kind = kind
      self.device = device
      self.date = date
      self.source = source
    }
  }

  /// The direction of a line, as seen from the daemon.
  public enum Direction: String, Codable, Sendable {
    case received = "rx"
    case sent = "tx"
    case state
  }

  /// One message, or one change of the state of a link.
  public struct Line: Codable, Sendable, Equatable {
    /// Nanoseconds since `Header.start`.
    public var t: Int64
    public var link: String
    public var dir: Direction
    public var hex: String?
    /// The state, for `dir` state; `secret: 16 bytes` in place of a secret message.
    public var text: String?

    /// The bytes of the message; nil if the line contains no message, or invalid hex.
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

  /// Parses a recording, or a log of can-utils; throws with the number of an invalid line. An incomplete last line is ignored.
  public init(parsing text: [UInt8]) throws(ValueError) {
    if text.first == UInt8(ascii: "(") {
      self = try Self(candump: text)
      return
    }
    var header: Header?
    var lines: [Line] = []
    let decoder = JSONDecoder()
    let all = text.split(separator: UInt8(ascii: "\n"))
    let isTruncated = text.last != UInt8(ascii: "\n")
    for (number, line) in all.enumerated() {
      do {
        if header == nil {
          header = try decoder.decode(Header.self, from: Data(line))
        } else {
          lines.append(try decoder.decode(Line.self, from: Data(line)))
        }
      } catch {
        if isTruncated, header != nil, number == all.count - 1 { break }
        throw ValueError("line \(number + 1): not a \(header == nil ? "recording header" : "recording line")")
      }
    }
    guard let header, header.format == 1 else { throw ValueError("not a recording of format 1") }
    self.header = header
    self.lines = lines
  }

  /// The header line, without the newline.
  public static func text(_ header: Header) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(header)).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  /// The line of a message, without the newline. `link` must not need escaping.
  public static func text(_ t: Int64, link: String, _ direction: Direction, bytes: [UInt8]) -> String {
    #"{"t":\#(t),"link":"\#(link)","dir":"\#(direction.rawValue)","hex":"\#(hex(bytes))"}"#
  }

  static func hex(_ bytes: [UInt8]) -> String {
    var digits: [UInt8] = []
    digits.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      digits.append(digit(byte >> 4))
      digits.append(digit(byte & 15))
    }
    return String(decoding: digits, as: UTF8.self)
  }

  /// A line without a message: a link state, or the length of a secret message.
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
