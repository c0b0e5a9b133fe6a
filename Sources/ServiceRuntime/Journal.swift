// Log output: to journald with metadata fields if standard error is the journal, otherwise one line per record on standard error.
// Thread-safe; one level for the whole process. Control characters are escaped, because messages can contain untrusted text.

import Glibc
import Logging
import Protocols
import Synchronization

/// The destination and the level of log records.
public enum Journal {
  /// A log record.
  public struct Record: Sendable {
    /// The wall-clock time in µs since the Unix epoch.
    public let wall: Int64
    public let level: Logger.Level
    public let device: String?
    public let link: String?
    public let message: String
    public let details: [String: String]

    public init(wall: Int64, level: Logger.Level, device: String?, link: String?, message: String, details: [String: String]) {
      (self.wall, self.level, self.device, self.link, self.message, self.details) = (wall, level, device, link, message, details)
    }
  }

  /// The metadata key of the MESSAGE_ID, by which programs find a record in the journal. The line on standard error omits it.
  public static let messageID = "message-id"

  /// Receives every record, on the thread that logs it.
  public typealias Observer = @Sendable (Record) -> Void

  private static let minLevel = Atomic(index(of: .info))

  /// The minimum log level, for every logger of the process; settable at any time.
  public static var level: Logger.Level {
    get { Logger.Level.allCases[minLevel.load(ordering: .relaxed)] }
    set { minLevel.store(index(of: newValue), ordering: .relaxed) }
  }

  /// Installs the handler of all loggers. Call it once, before the first logger is created. `identifier` is the name of the program in the
  /// journal.
  public static func bootstrap(identifier: String, level: Logger.Level = .info, observer: Observer? = nil) {
    self.level = level
    let structured = isConnected(to: STDERR_FILENO, getenv("JOURNAL_STREAM").map { String(cString: $0) })
    let handler: @Sendable (String, Logger.MetadataProvider?) -> any LogHandler = { _, provider in
      if structured {
        JournalHandler(identifier: identifier, metadataProvider: provider, observer: observer)
      } else {
        LineHandler(metadataProvider: provider, observer: observer, isForTerminal: LineHandler.hasTerminal)
      }
    }
    LoggingSystem.bootstrap(handler, metadataProvider: nil)
  }

  /// Whether the descriptor is the journal stream of `$JOURNAL_STREAM` (DEVICE:INODE).
  static func isConnected(to descriptor: Int32, _ stream: String?) -> Bool {
    var status = stat()
    guard let stream, fstat(descriptor, &status) == 0 else { return false }
    return stream == "\(status.st_dev):\(status.st_ino)"
  }

  private static let counts = Logger.Level.allCases.map { _ in Count() }

  private final class Count: Sendable { let value = Atomic(0) }

  /// The number of records of each level since the start.
  public static var records: [(level: Logger.Level, count: Int)] {
    zip(Logger.Level.allCases, counts).map { ($0, $1.value.load(ordering: .relaxed)) }
  }

  static func countRecord(of level: Logger.Level) { counts[index(of: level)].value.add(1, ordering: .relaxed) }

  private static func index(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}

/// A log handler that writes records as text. All loggers share the level of the process.
protocol RecordHandler: LogHandler {
  var observer: Journal.Observer? { get }
  func write(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata)
}

extension RecordHandler {
  var logLevel: Logger.Level {
    get { Journal.level }
    set { Journal.level = newValue }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var all = metadata
    if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
    if let given = event.metadata { all.merge(given) { $1 } }
    if let error = event.error { all["error"] = "\(error)" }
    Journal.countRecord(of: event.level)
    let message = printable(event.message.description, limit: 4096)
    let text = { (key: String) in all[key].map { printable("\($0)", limit: 200) } }
    let details = all.filter { $0.key != "device" && $0.key != "link" }.mapValues { printable("\($0)", limit: 200) }
    observer?(
      Journal.Record(
        wall: SystemClock.wall, level: event.level, device: text("device"), link: text("link"), message: message, details: details))
    write(event.level, message, all)
  }
}

/// Journald's native protocol: each metadata value is a field that journalctl can match (`journalctl VEHICLED_DEVICE=ev`). Never blocks: a
/// record for which journald has no room is dropped, and the next one gives the number of dropped records.
/// Source: systemd's page "Native Journal Protocol". Values contain no line breaks, so that each field is one line.
struct JournalHandler: RecordHandler {
  let identifier: String
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var observer: Journal.Observer?
  /// The socket of journald.
  var path = "/run/systemd/journal/socket"

  private static let socket = DatagramSocket()
  private static let dropped = Atomic(0)

  func write(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) {
    let dropped = JournalHandler.dropped.exchange(0, ordering: .relaxed)
    let note = dropped == 0 ? "" : " (\(dropped) earlier records were dropped: journald did not read them)"
    let fields = JournalHandler.fields(identifier, level, message + note, metadata)
    var code = JournalHandler.send(fields, to: path)
    // The first three fields contain no metadata.
    if code == EMSGSIZE { code = JournalHandler.send(fields.prefix(3), to: path) }
    if code != 0 { JournalHandler.dropped.add(dropped + 1, ordering: .relaxed) }
  }

  private static func send(_ fields: some Sequence<String>, to path: String) -> CInt {
    socket.send(fields.joined(separator: "\n") + "\n", to: path)
  }

  /// The journal fields of a record, each as NAME=VALUE.
  static func fields(_ identifier: String, _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> [String] {
    ["MESSAGE=\(message)", "PRIORITY=\(priority(of: level))", "SYSLOG_IDENTIFIER=\(identifier)"]
      + metadata.sorted { $0.key < $1.key }.prefix(32).map { "\(name(of: $0.key))=\(printable("\($0.value)", limit: 4096))" }
  }

  /// The field name of a metadata key: VEHICLED_DEVICE for `device`. Upper-case letters, digits and underscores, at most 64.
  private static func name(of key: String) -> String {
    if key == Journal.messageID { return "MESSAGE_ID" }
    let letters = key.utf8.prefix(55).map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 32
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): byte
      default: UInt8(ascii: "_")
      }
    }
    return "VEHICLED_" + String(decoding: letters, as: UTF8.self)
  }

  private static func priority(of level: Logger.Level) -> Int32 {
    switch level {
    case .trace, .debug: LOG_DEBUG
    case .info: LOG_INFO
    case .notice: LOG_NOTICE
    case .warning: LOG_WARNING
    case .error: LOG_ERR
    case .critical: LOG_CRIT
    }
  }
}

/// Writes `12:00:00.000 warning ev/main: no answer error=timeout` with one write(2); on a terminal, lines are aligned, and coloured by
/// level. Never blocks: a line for which a pipe has no room is dropped, and the next line gives the number of dropped lines.
struct LineHandler: RecordHandler {
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var observer: Journal.Observer?
  var descriptor: Int32 = STDERR_FILENO
  /// Whether lines are aligned and coloured.
  var isForTerminal = false

  /// Whether to write lines for people: standard error is a terminal that shows colours, and the user has not turned them off.
  static let hasTerminal: Bool = {
    let text = { (name: String) in getenv(name).map { String(cString: $0) } ?? "" }
    return isatty(STDERR_FILENO) == 1 && text("NO_COLOR").isEmpty && !["", "dumb"].contains(text("TERM"))
  }()

  func write(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) {
    let dropped = LineHandler.dropped.exchange(0, ordering: .relaxed)
    let note = dropped == 0 ? "" : " (\(dropped) earlier lines were dropped: standard error was not read)"
    let text = isForTerminal ? LineHandler.coloured(level, message, metadata) : LineHandler.text(level, message, metadata)
    var line = Array("\(LineHandler.now()) \(text)\(note)".utf8)
    // A pipe that is ready for writing accepts PIPE_BUF bytes without blocking.
    if line.count >= PIPE_BUF {
      line.removeSubrange((Int(PIPE_BUF) - 4)...)
      while let last = line.last, last & 0xC0 == 0x80 { line.removeLast() }
      line[line.count - 1] = UInt8(ascii: " ")
      line += (isForTerminal ? "…\u{1b}[0m" : "…").utf8
    }
    line.append(UInt8(ascii: "\n"))
    var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&polled, 1, 0) > 0, Glibc.write(descriptor, line, line.count) == line.count else {
      LineHandler.dropped.add(dropped + 1, ordering: .relaxed)
      return
    }
  }

  private static let dropped = Atomic(0)

  /// The record without its time.
  static func text(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
    let (subject, details) = parts(of: metadata)
    return "\(level.rawValue) " + (subject.isEmpty ? "" : "\(subject): ") + message + details
  }

  /// The record without its time, in columns and colours.
  static func coloured(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
    let (subject, details) = parts(of: metadata)
    let colour =
      switch level {
      case .critical, .error: "31"
      case .warning: "33"
      case .trace, .debug: "2"
      case .info, .notice: "0"
      }
    let pad = { (text: String, width: Int) in text + String(repeating: " ", count: max(0, width - text.count)) }
    return "\u{1b}[\(colour)m\(pad(level.rawValue, 8))\u{1b}[0m \u{1b}[1m\(pad(subject, 10))\u{1b}[0m \u{1b}[\(colour)m\(message)\u{1b}[0m"
      + (details.isEmpty ? "" : "\u{1b}[2m\(details)\u{1b}[0m")
  }

  private static func parts(of metadata: Logger.Metadata) -> (subject: String, details: String) {
    let subject = ["device", "link"].compactMap { metadata[$0].map { printable("\($0)") } }.joined(separator: "/")
    let further = metadata.filter { !["device", "link", "event", Journal.messageID].contains($0.key) }.sorted { $0.key < $1.key }
    return (subject, further.map { " \(printable($0.key))=\(printable("\($0.value)"))" }.joined())
  }

  private static func now() -> String {
    let wall = SystemClock.wall
    var seconds = time_t(wall / 1_000_000)
    var parts = tm()
    localtime_r(&seconds, &parts)
    let milliseconds = String(wall / 1000 % 1000 + 1000).dropFirst()
    return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { String($0 + 100).dropFirst() }.joined(separator: ":") + "." + milliseconds
  }
}
