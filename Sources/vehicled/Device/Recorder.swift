// Keeps what goes over a device's links in the state directory, for `record = true`: recordings/NAME-DATE.ndjson. Lines
// are gathered and written by the disk's thread; a file that grows past its limit is followed by a new one, and the
// oldest of the device's files go, so that a forgotten recorder never fills the disk.

import Glibc
import Protocols

@Loop final class Recorder {
  private let device: Device
  private let disk: Disk
  private var tap: Taps.Tap?
  private var gathered: [UInt8] = []
  private var file: String?
  private var written = 0
  private var failed = false
  private lazy var timer = Timer { [weak self] _ in self?.write() }

  private static let largestFile = 64 << 20
  private nonisolated static let mostFiles = 4
  /// `-2026-01-31T120000Z.ndjson`: device `ev` must not take the files of `ev-2` for its own.
  private nonisolated static let dateLength = 26
  private static let writeDelay: Nanoseconds = .second

  init(_ device: Device, disk: Disk) {
    self.device = device
    self.disk = disk
    tap = device.taps.add { [weak self] in self?.take($0) }
  }

  func close() {
    if let tap { device.taps.remove(tap) }
    timer.set(nil)
    write()
  }

  private func take(_ line: String) {
    if gathered.isEmpty { timer.set(Clock.monotonic() + Self.writeDelay) }
    if file == nil { begin() }
    gathered.append(contentsOf: line.utf8)
    gathered.append(UInt8(ascii: "\n"))
  }

  private func begin() {
    let header = device.recordingHeader
    file = "\(disk.directory)/recordings/\(device.name)-\(header.date.replacing(":", with: "")).ndjson"
    written = 0
    gathered.append(contentsOf: Recording.text(header).utf8)
    gathered.append(UInt8(ascii: "\n"))
  }

  private func write() {
    guard let path = file, !gathered.isEmpty else { return }
    let bytes = gathered
    gathered.removeAll(keepingCapacity: true)
    written += bytes.count
    if written > Self.largestFile { file = nil }
    let folder = "\(disk.directory)/recordings"
    let name = device.name
    disk.run { () throws(ValueError) in
      try Files.makeDirectory(folder)
      try Files.write(path, bytes, flags: O_APPEND)
      let mine = Files.list(folder).filter { $0.hasPrefix("\(name)-2") && $0.count == name.count + Self.dateLength }
      for old in mine.dropLast(Self.mostFiles) { unlink("\(folder)/\(old)") }
    } then: { [weak self] result in
      self?.told(result)
    }
  }

  /// One line in the journal when writing begins to fail, and one when it works again.
  private func told(_ result: Result<Void, ValueError>) {
    switch result {
    case .success where failed:
      failed = false
      device.log.notice("recording again")
    case .failure(let error) where !failed:
      failed = true
      device.log.error("not recording: \(error)")
    default: break
    }
  }
}

extension Device {
  /// The first line of a recording of this device that begins now.
  var recordingHeader: Recording.Header { Recording.Header(kind: kind, device: name, date: Clock.isoTime()) }
}
