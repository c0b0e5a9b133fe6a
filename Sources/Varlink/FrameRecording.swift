// The frames of a CAN bus in recordings: from logs of can-utils, and as lines of slcan, in which they are replayed.

import Protocols

extension Recording {
  /// The values of `Header.frames`.
  public static let (slcan, socketCAN) = ("slcan", "socketcan")

  /// Parses a log of can-utils (candump -L); throws with the number of an invalid line. An incomplete last line is ignored, and so are
  /// frames that slcan does not have: those of CAN FD, and reports of errors.
  init(candump text: [UInt8]) throws(ValueError) {
    header = Header(kind: "can", device: "can", date: WallTime.isoTime(0), frames: Self.slcan)
    lines = []
    var first: Int64?
    let all = text.split(whereSeparator: isLineEnd)
    for (number, line) in all.enumerated() {
      guard let parsed = CandumpLine(line) else {
        if CandumpLine.isCANFD(line) || number == all.count - 1 && text.last != lineFeed { continue }
        throw ValueError("line \(number + 1): not a line of candump -L, such as (1436509052.249713) can0 7E0#0322010100000000")
      }
      first = first ?? parsed.time
      let frame = SLCAN.text(of: parsed.frame)
      if frame.isEmpty { continue }
      let t = (parsed.time - (first ?? 0)) * .microsecond
      lines.append(Line(t: t, link: "main", dir: parsed.isSent ? .sent : .received, hex: Self.hex(frame), text: nil))
    }
  }

  /// The bytes of a message as they are replayed: frames of a CAN socket become lines of slcan.
  public func replayBytes(of line: Line) -> [UInt8]? {
    guard header.frames == Self.socketCAN, let bytes = line.bytes else { return line.bytes }
    var text: [UInt8] = []
    SocketCAN.decode(bytes) { SLCAN.append($0, to: &text) }
    return text
  }
}

/// Reads frames from the lines of a recording as they arrive.
public struct FrameReader {
  private let isSocket: Bool
  /// A line of slcan can be split into several messages.
  private var (received, sent) = (SLCANDecoder(), SLCANDecoder())

  /// Creates a reader for a recording with this header; nil if its messages contain no frames.
  public init?(_ header: Recording.Header) {
    guard let frames = header.frames else { return nil }
    isSocket = frames == Recording.socketCAN
  }

  /// Passes on the frames in a message.
  package mutating func read(_ line: Recording.Line, _ handle: (CANFrame) -> Void) {
    guard let bytes = line.bytes, line.dir != .state else { return }
    guard !isSocket else { return SocketCAN.decode(bytes, handle) }
    func pass(_ item: SLCANDecoder.Item) { if case .frame(let frame) = item { handle(frame) } }
    if line.dir == .sent { sent.receive(bytes, pass) } else { received.receive(bytes, pass) }
  }
}
