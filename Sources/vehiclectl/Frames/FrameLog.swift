// A recording as a log of can-utils (candump -L). No I/O.

import FoundationEssentials
import Protocols
import Varlink

struct FrameLog {
  private var stream = FrameStream()
  private let device: String
  /// The name in the lines; interfaces of Linux have at most 15 characters.
  private let interface: String

  /// Creates a log for a recording with this header. Returns nil if it is recorded in the daemon's format: unless a log is wanted, only
  /// devices of kind can have one.
  init?(_ header: String, device: String, isWanted: Bool) {
    let parsed = try? JSONDecoder().decode(Recording.Header.self, from: Data(header.utf8))
    guard isWanted || parsed?.kind == "can" && parsed?.frames != nil else { return nil }
    self.device = device
    interface = String(device.prefix(15))
  }

  /// The lines for the frames in a line of the recording, whose first line is its header.
  mutating func lines(of line: String) throws(Failure) -> [String] {
    var lines: [String] = []
    try stream.read(line, device: device) {
      lines.append(CandumpLine(time: $0.time, interface: interface, $0.frame, isSent: $0.isSent).text)
    }
    return lines
  }
}
