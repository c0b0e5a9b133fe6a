// The frames in a recording as it arrives from the daemon, line by line. No I/O.

import FoundationEssentials
import Protocols
import Varlink

struct FrameStream {
  struct Entry {
    /// µs since the Unix epoch.
    var time: Int64
    var isSent: Bool
    var frame: CANFrame
  }

  private var reader: FrameReader?
  /// When the times of the recording count from, in µs since the Unix epoch.
  private var start: Int64 = 0
  private let decoder = JSONDecoder()

  /// Reads a line; `handle` receives its frames. Throws if the device's messages contain no frames.
  mutating func read(_ line: String, device: String, _ handle: (Entry) -> Void) throws(Failure) {
    guard reader != nil else {
      let header = try? decoder.decode(Recording.Header.self, from: Data(line.utf8))
      reader = header.flatMap { FrameReader($0) }
      start = header?.start ?? 0
      guard reader != nil else {
        throw .usage("\(device) has no CAN frames; use a device with a slcan: or can: link")
      }
      return
    }
    guard let parsed = try? decoder.decode(Recording.Line.self, from: Data(line.utf8)) else { return }
    let time = start + parsed.t / .microsecond
    reader?.read(parsed) { handle(Entry(time: time, isSent: parsed.dir == .sent, frame: $0)) }
  }
}
