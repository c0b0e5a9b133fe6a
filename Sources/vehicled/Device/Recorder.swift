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
  private var tap: Taps.Tap?
  private var gathered: [UInt8] = []
  private var file: String?
  private var written = 0
  private var isWriting = false
  private var trouble: String?
  private lazy var timer = Timer { [weak self] _ in self?.write() }

  private static let largestFile = 64 << 20
  private static let mostGathered = 1 << 20
  private nonisolated static let mostFiles = 4
  private static let writeDelay: Nanoseconds = .second

  init(_ device: Device, disk: Disk) {
    self.device = device
    self.disk = disk
    folder = "\(disk.directory)/recordings/\(device.name)"
    tap = device.taps.add { [weak self] in self?.take($0) }
  }

  func close() {
    if let tap { device.taps.remove(tap) }
    timer.set(nil)
    // The disk's thread keeps the order.
    isWriting = false
    write()
  }

  private func take(_ line: String) {
    guard gathered.count < Self.mostGathered else { return tell("the disk does not answer, what comes meanwhile is lost") }
    if gathered.isEmpty { timer.set(Clock.monotonic() + Self.writeDelay) }
    if file == nil { begin() }
    gathered.append(contentsOf: line.utf8)
    gathered.append(UInt8(ascii: "\n"))
  }

  private func begin() {
    let header = device.recordingHeader
    file = "\(folder)/\(header.date.replacing(":", with: "")).ndjson"
    written = 0
    gathered.append(contentsOf: Recording.text(header).utf8)
    gathered.append(UInt8(ascii: "\n"))
  }

  private func write() {
    guard let file, !gathered.isEmpty, !isWriting else { return }
    let bytes = gathered
    gathered.removeAll(keepingCapacity: true)
    written += bytes.count
    if written > Self.largestFile { self.file = nil }
    isWriting = true
    disk.run { [folder] () throws(ValueError) in
      try Files.makeDirectory(folder)
      try Files.write(file, bytes, flags: O_APPEND)
      for old in Files.list(folder).dropLast(Self.mostFiles) { unlink("\(folder)/\(old)") }
    } then: { [self] result in
      isWriting = false
      switch result {
      case .success: tell(nil)
      case .failure(let error): tell(error.description)
      }
      if !gathered.isEmpty, !timer.isSet { write() }
    }
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
