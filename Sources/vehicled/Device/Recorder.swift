// Keeps what goes over a device's links in the state directory, for `record = true`: recordings/NAME/NUMBER-DATE.ndjson. Lines
// are gathered and written by the disk's thread; a file that grows past its limit is followed by a new one, and the
// oldest of the device's files go, so that a forgotten recorder never fills the disk. The number says which is the oldest: a
// machine without a battery for its clock starts in the past. A disk that hangs costs the lines that come meanwhile, never the
// daemon's memory.

import Glibc
import Protocols
import Synchronization

@Loop final class Recorder {
  private let device: Device
  private let disk: Disk
  private let folder: String
  private let restTime: Nanoseconds
  private var tap: Taps.Tap?
  private var gathered: [UInt8] = []
  private var file: File?
  private var written = 0
  private var isWriting = false
  private var isClosed = false
  private var trouble: String?
  private lazy var timer = Timer { [weak self] _ in self?.timeIsUp() }

  /// A file that is being written. The disk's thread names it with its first bytes.
  private final class File: Sendable {
    let date: String
    let path = Mutex<String?>(nil)
    init(date: String) { self.date = date }
  }

  private static let largestFile = 64 << 20
  private static let maxCollected = 1 << 20
  private nonisolated static let maxFiles = 4
  private static let writeDelay: Nanoseconds = .second

  /// Records from now on; after a failure it tries again after `restTime`.
  init(_ device: Device, disk: Disk, restTime: Nanoseconds = 10 * .second) {
    self.restTime = restTime
    self.device = device
    self.disk = disk
    folder = "\(disk.directory)/recordings/\(device.name)"
    begin()
  }

  func close() {
    isClosed = true
    stopListening()
    timer.set(nil)
    // The disk's thread keeps the order.
    isWriting = false
    write()
  }

  private func take(_ line: String) {
    guard gathered.count < Self.maxCollected else {
      tell("the disk does not answer")
      return stopListening()
    }
    if gathered.isEmpty { timer.set(Clock.monotonic() + Self.writeDelay) }
    if file == nil { open() }
    gathered.append(contentsOf: line.utf8)
    gathered.append(UInt8(ascii: "\n"))
  }

  private func open() {
    let header = device.recordingHeader
    file = File(date: header.date.replacing(":", with: ""))
    written = 0
    gathered.append(contentsOf: Recording.text(header).utf8)
    gathered.append(UInt8(ascii: "\n"))
  }

  private func timeIsUp() {
    if gathered.isEmpty, tap == nil { begin() } else { write() }
  }

  private func write() {
    guard let file, !gathered.isEmpty, !isWriting else { return }
    let bytes = gathered
    gathered.removeAll(keepingCapacity: true)
    written += bytes.count
    isWriting = true
    disk.run { [folder, root = disk.directory, name = device.name] () throws(ValueError) in
      try Files.makeDirectory("recordings/\(name)", below: root)
      if let path = file.path.withLock({ $0 }) { return try Files.write(path, bytes, flags: O_APPEND) }
      let earlier = Self.recordings(in: folder)
      let path = "\(folder)/\(Self.name((earlier.last.map(Self.number) ?? 0) + 1, file.date))"
      try Files.write(path, bytes, flags: O_CREAT | O_EXCL)
      file.path.withLock { $0 = path }
      for old in earlier.dropLast(Self.maxFiles - 1) { unlink("\(folder)/\(old)") }
    } then: { [self] result in
      isWriting = false
      switch result {
      case .success where tap == nil || written > Self.largestFile:
        if gathered.isEmpty { begin() } else { write() }
      case .success:
        tell(nil)
        if !gathered.isEmpty, !timer.isSet { write() }
      case .failure(let error):
        tell(error.description)
        stopListening()
        gathered.removeAll()
        if !isClosed { timer.set(Clock.monotonic() + restTime) }
      }
    }
  }

  private nonisolated static func name(_ number: Int, _ date: String) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, minNumber - digits.count)) + "\(digits)-\(date).ndjson"
  }

  private nonisolated static let minNumber = 6

  /// The number that a name begins with; 0 where it begins with a year, as those of version 0.1.
  private nonisolated static func number(of name: String) -> Int {
    let digits = name.prefix { $0 != "-" }
    return digits.count < minNumber ? 0 : Int(digits) ?? 0
  }

  /// The recordings in a folder, the oldest first.
  private nonisolated static func recordings(in folder: String) -> [String] {
    Files.list(folder).filter { $0.hasSuffix(".ndjson") }.sorted { (number(of: $0), $0) < (number(of: $1), $1) }
  }

  /// Listens from the start of the link's opening, into a new file: one with a hole in it cannot be played back.
  private func begin() {
    guard !isClosed else { return }
    stopListening()
    file = nil
    tap = device.taps.add { [weak self] in self?.take($0) }
  }

  private func stopListening() {
    if let tap { device.taps.remove(tap) }
    tap = nil
  }

  /// One line in the journal when writing begins to fail, and one when it works again.
  private func tell(_ new: String?) {
    if let new, trouble == nil { device.log.error("not recording: \(new)") }
    if new == nil, trouble != nil { device.log.notice("recording again") }
    trouble = new
  }
}

extension Device {
  /// The first line of a recording of this device that begins now.
  var recordingHeader: Recording.Header { Recording.Header(kind: kind, device: name, date: Clock.isoTime()) }
}
