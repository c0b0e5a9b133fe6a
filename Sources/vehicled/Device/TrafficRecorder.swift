// Records the traffic of a device's links to recordings/NAME/NUMBER-DATE.ndjson in the state directory (`record = true`). Files are
// numbered because a clock without a battery may be wrong; the oldest are removed, so that the disk does not fill up. The disk
// thread writes in batches; if the disk hangs, lines are dropped and memory stays bounded.

import Glibc
import Protocols
import ServiceRuntime
import Synchronization
import Varlink

@Loop final class TrafficRecorder {
  private let device: Device
  private let disk: Disk
  private let folder: String
  private let retryDelay: Nanoseconds
  private var subscription: LinkMonitor.Subscription?
  /// From when the times in the lines count.
  private var start: Instant = 0
  private var buffer: [UInt8] = []
  private var file: File?
  private var written = 0
  private var isWriting = false
  private var isClosed = false
  private var failure: String?
  private lazy var timer = Timer { [weak self] _ in self?.handleTimeout() }

  /// A file being written. The disk thread names it when it writes the first bytes.
  private final class File: Sendable {
    let date: String
    let path = Mutex<String?>(nil)
    init(date: String) { self.date = date }
  }

  private static let maxFileSize = 64 << 20
  private static let maxBuffered = 1 << 20
  private nonisolated static let maxFiles = 4
  private static let writeDelay: Nanoseconds = .second

  /// Starts recording. After a failed write, recording starts again after `retryDelay`.
  init(_ device: Device, disk: Disk, retryDelay: Nanoseconds = 10 * .second) {
    self.retryDelay = retryDelay
    self.device = device
    self.disk = disk
    folder = "\(disk.directory)/recordings/\(device.name)"
    begin()
  }

  func close() {
    isClosed = true
    unsubscribe()
    timer.set(nil)
    // A write in progress does not prevent the last one: the disk thread runs them in order.
    isWriting = false
    write()
  }

  private func append(_ line: String) {
    guard buffer.count < Self.maxBuffered else {
      report("the disk does not respond")
      return unsubscribe()
    }
    if buffer.isEmpty { timer.set(Clock.monotonic() + Self.writeDelay) }
    if file == nil { open() }
    buffer.append(contentsOf: line.utf8)
    buffer.append(UInt8(ascii: "\n"))
  }

  private func open() {
    let header = device.recordingHeader(from: start)
    file = File(date: header.date.replacing(":", with: ""))
    written = 0
    buffer.append(contentsOf: Recording.text(header).utf8)
    buffer.append(UInt8(ascii: "\n"))
  }

  private func handleTimeout() {
    if buffer.isEmpty, subscription == nil { begin() } else { write() }
  }

  private func write() {
    guard let file, !buffer.isEmpty, !isWriting else { return }
    let bytes = buffer
    buffer.removeAll(keepingCapacity: true)
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
      case .success where subscription == nil || written > Self.maxFileSize:
        if buffer.isEmpty { begin() } else { write() }
      case .success:
        report(nil)
        if !buffer.isEmpty, !timer.isSet { write() }
      case .failure(let error):
        report(error.description)
        unsubscribe()
        buffer.removeAll()
        if !isClosed { timer.set(Clock.monotonic() + retryDelay) }
      }
    }
  }

  private nonisolated static func name(_ number: Int, _ date: String) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, minDigits - digits.count)) + "\(digits)-\(date).ndjson"
  }

  private nonisolated static let minDigits = 6

  /// The number at the start of a file name; 0 if the name starts with a year, as in version 0.1.
  private nonisolated static func number(of name: String) -> Int {
    let digits = name.prefix { $0 != "-" }
    return digits.count < minDigits ? 0 : Int(digits) ?? 0
  }

  /// The names of the recordings in a folder, the oldest first.
  private nonisolated static func recordings(in folder: String) -> [String] {
    Files.list(folder).filter { $0.hasSuffix(".ndjson") }.sorted { (number(of: $0), $0) < (number(of: $1), $1) }
  }

  /// Subscribes again for a new file, which therefore starts with the opening exchange of each link: a recording with a gap cannot be
  /// replayed.
  private func begin() {
    guard !isClosed else { return }
    unsubscribe()
    file = nil
    start = device.monitor.start
    subscription = device.monitor.add(from: start) { [weak self] in self?.append($0) }
  }

  private func unsubscribe() {
    if let subscription { device.monitor.remove(subscription) }
    subscription = nil
  }

  /// Logs once when writing starts to fail, and once when it works again (`new` is nil).
  private func report(_ new: String?) {
    if let new, failure == nil { device.log.logger.error("cannot record: \(new)") }
    if new == nil, failure != nil { device.log.logger.notice("recording resumed") }
    failure = new
  }
}

extension Device {
  /// The first line of a recording of this device. `start` is when its times count from, which is before now if it contains the opening of
  /// a link.
  func recordingHeader(from start: Instant) -> Recording.Header {
    Recording.Header(
      kind: kind, device: name, date: Clock.isoTime(), start: Clock.wall(of: start), frames: ports.first.flatMap(Self.frames))
  }

  /// How the messages of a link contain frames of a CAN bus; nil if they contain none.
  private static func frames(of port: LinkSupervisor) -> String? {
    switch port.url {
    case .slcan: Recording.slcan
    case .can: Recording.socketCAN
    // Whatever the recording contains, the link passes on lines of slcan.
    case .replay: port.role.onlyReceives && port.role.schemes.contains("slcan") ? Recording.slcan : nil
    default: nil
    }
  }
}
