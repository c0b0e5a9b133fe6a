// Keeps what goes over a device's links in the state directory, for `record = true`: recordings/NAME/DATE.ndjson. Lines
// are gathered and written by the disk's thread; a file that grows past its limit is followed by a new one, and the
// oldest of the device's files go, so that a forgotten recorder never fills the disk. A disk that hangs costs the lines
// that come meanwhile, never the daemon's memory.

import Glibc
import Protocols

@Loop final class Recorder {
  private let device: Device
  private let disk: Disk
  private let folder: String
  private let restTime: Nanoseconds
  private var tap: Taps.Tap?
  private var gathered: [UInt8] = []
  private var file: String?
  private var written = 0
  private var isNew = true
  private var isWriting = false
  private var isClosed = false
  private var trouble: String?
  private lazy var timer = Timer { [weak self] _ in self?.timeIsUp() }

  private static let largestFile = 64 << 20
  private static let mostGathered = 1 << 20
  private nonisolated static let mostFiles = 4
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
    guard gathered.count < Self.mostGathered else {
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
    file = "\(folder)/\(header.date.replacing(":", with: "")).ndjson"
    isNew = true
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
    let flags = isNew ? O_CREAT | O_EXCL : O_APPEND
    isNew = false
    disk.run { [folder] () throws(ValueError) in
      try Files.makeDirectory(folder)
      try Files.write(file, bytes, flags: flags)
      for old in Files.list(folder).dropLast(Self.mostFiles) { unlink("\(folder)/\(old)") }
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
