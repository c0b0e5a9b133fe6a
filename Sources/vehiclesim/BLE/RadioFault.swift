// Radio faults between a Bluetooth adapter and a peripheral, as given on the command line.

import Protocols

enum RadioFault: Equatable, Sendable {
  /// The connection drops at every Nth notification.
  case drop(Int)
  /// Connecting takes this time.
  case slow(Nanoseconds)
  /// The first N connection attempts fail.
  case abort(Int)
  /// The first N calls of StartDiscovery are rejected.
  case busy(Int)
  /// The first N calls of StartDiscovery get no reply, but discovery starts.
  case mute(Int)
  /// Properties change every 20 ms.
  case churn
  /// The GATT table is replaced once, after N notifications.
  case serviceChange(Int)
  /// BlueZ offers no sockets for characteristics, as in old versions.
  case noDescriptors
  /// An empty notification precedes every Nth notification.
  case empty(Int)
  /// D-Bus replies have wrong types.
  case oddReplies
  /// Every Nth write gets no reply.
  case noAnswer(Int)
  /// Every Nth write is rejected.
  case refuse(Int)
  /// The connection drops at every Nth write.
  case dropWrites(Int)
  /// The write characteristic is missing.
  case noCharacteristic
  /// The peripheral does not advertise in the first N seconds.
  case away(Int)
  /// BlueZ has no advertisement monitors, as without --experimental.
  case noMonitor
  /// BlueZ releases advertisement monitors.
  case fullMonitor

  /// Whether the fault affects the adapter, and so all peripherals.
  var affectsAdapter: Bool {
    switch self {
    case .busy, .mute, .noMonitor, .fullMonitor: true
    default: false
    }
  }

  static let table: [(syntax: String, help: String)] = [
    ("drop:N", "the connection drops at every Nth notification"),
    ("slow:MS", "connecting takes MS milliseconds"),
    ("abort:N", "the first N connection attempts fail"),
    ("busy:N", "the first N StartDiscovery calls are rejected"),
    ("mute:N", "the first N StartDiscovery calls get no reply"),
    ("churn", "properties change every 20 ms"),
    ("service-change:N", "the GATT services are replaced once, after N notifications"),
    ("no-descriptors", "no sockets for characteristics, only D-Bus signals and calls"),
    ("empty:N", "an empty notification precedes every Nth notification"),
    ("odd-replies", "D-Bus replies have wrong types"),
    ("no-answer:N", "every Nth write gets no reply"),
    ("refuse:N", "every Nth write is rejected"),
    ("drop-writes:N", "the connection drops at every Nth write"),
    ("no-characteristic", "the write characteristic is missing"),
    ("away:S", "the peripheral does not advertise in the first S seconds"),
    ("no-monitor", "BlueZ has no advertisement monitors"),
    ("full-monitor", "BlueZ releases advertisement monitors"),
  ]

  /// Parses a specification such as `drop:100`.
  init(_ text: String) throws(ValueError) {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    let number = parts.count == 2 ? Int(parts[1]).flatMap { (1...1_000_000).contains($0) ? $0 : nil } : nil
    switch (parts.first, number, parts.count) {
    case ("drop", let count?, _): self = .drop(count)
    case ("slow", let milliseconds?, _): self = .slow(Int64(milliseconds) * .millisecond)
    case ("abort", let count?, _): self = .abort(count)
    case ("busy", let count?, _): self = .busy(count)
    case ("mute", let count?, _): self = .mute(count)
    case ("service-change", let count?, _): self = .serviceChange(count)
    case ("empty", let count?, _): self = .empty(count)
    case ("churn", nil, 1): self = .churn
    case ("no-descriptors", nil, 1): self = .noDescriptors
    case ("odd-replies", nil, 1): self = .oddReplies
    case ("no-answer", let count?, _): self = .noAnswer(count)
    case ("refuse", let count?, _): self = .refuse(count)
    case ("drop-writes", let count?, _): self = .dropWrites(count)
    case ("no-characteristic", nil, 1): self = .noCharacteristic
    case ("away", let seconds?, _): self = .away(seconds)
    case ("no-monitor", nil, 1): self = .noMonitor
    case ("full-monitor", nil, 1): self = .fullMonitor
    default: throw ValueError("unknown radio fault \"\(text)\": choose one of \(Self.table.map(\.syntax).joined(separator: ", "))")
    }
  }
}
