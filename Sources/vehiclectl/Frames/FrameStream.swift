// The frames in a recording as it arrives from the daemon, line by line. No I/O.

import FoundationEssentials
import Protocols
import Varlink

struct FrameStream {
  struct Entry {
    /// µs since the recording began.
    var time: Int64
    var isSent: Bool
    var frame: CANFrame
  }

  private var reader: FrameReader?
  private let decoder = JSONDecoder()

  /// Reads a line; `handle` receives its frames. Throws if the device's messages contain no frames.
  mutating func read(_ line: String, device: String, _ handle: (Entry) -> Void) throws(Failure) {
    guard reader != nil else {
      let header = try? decoder.decode(Recording.Header.self, from: Data(line.utf8))
      reader = header.flatMap { FrameReader($0) }
      guard reader != nil else {
        throw .usage("\(device) has no CAN frames; use a device with a slcan: or can: link")
      }
      return
    }
    guard let parsed = try? decoder.decode(Recording.Line.self, from: Data(line.utf8)) else { return }
    reader?.read(parsed) { handle(Entry(time: parsed.t / .microsecond, isSent: parsed.dir == .sent, frame: $0)) }
  }
}
