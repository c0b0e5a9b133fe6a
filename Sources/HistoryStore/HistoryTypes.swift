// The rows of the store as value types: series, boots, blocks, periods.

import Protocols

/// The identity of a series. If the unit or the type of a property changes, another series starts.
public struct SeriesKey: Hashable, Sendable {
  public var device: String
  public var property: String
  public var type: ValueType
  public var unit: String?

  /// Creates a key.
  public init(device: String, property: String, type: ValueType, unit: String? = nil) {
    self.device = device
    self.property = property
    self.type = type
    self.unit = unit
  }
}

/// A series and its ID, by which blocks refer to it.
public struct Series: Hashable, Sendable {
  public let id: Int
  public let key: SeriesKey
}

/// A boot of the computer, and the offset that converts its times to wall-clock time.
public struct Boot: Equatable, Sendable {
  public let id: Int
  /// The kernel's boot id, or a name for imported data.
  public let uuid: String
  /// Microseconds from CLOCK_BOOTTIME to CLOCK_REALTIME.
  public let offset: Int64
  /// Whether the clock was synchronised when the offset was set. The offset is then final.
  public let isSynchronised: Bool
  /// Whether the boot may have unmerged blocks. Their table has no index, so it is searched only if this is true.
  var hasRecent = true
}

/// A time within a boot, in microseconds of CLOCK_BOOTTIME.
public struct BootTime: Hashable, Sendable {
  public var boot: Int
  public var time: Int64

  /// Creates a time.
  public init(boot: Int, time: Int64) {
    self.boot = boot
    self.time = time
  }
}

/// A block to append: the samples of one device in one boot.
public struct NewBlock: Sendable {
  public var device: String
  public var boot: Int
  /// The time from which the block covers its series, in µs.
  public var start: Int64
  /// The time until which the values of the block are known to be valid, in µs.
  public var end: Int64
  /// Whether recording continued without a gap since the previous block of this device, so that its last values are valid until this one.
  public var continues: Bool
  /// The result of `BlockBuilder.build` for the same start and end.
  public var bytes: [UInt8]

  /// Creates a block to append.
  public init(device: String, boot: Int, start: Int64, end: Int64, continues: Bool, bytes: [UInt8]) {
    self.device = device
    self.boot = boot
    self.start = start
    self.end = end
    self.continues = continues
    self.bytes = bytes
  }
}

/// A trip, a charge or a parked period. The store does not compute any of its figures.
public struct Period: Equatable, Sendable {
  /// What the vehicle did.
  public enum Kind: String, Sendable, CaseIterable {
    case trip, charge, parking
  }

  /// The ID, which never changes and is never reused; 0 before the period is stored.
  public var id = 0
  public var device: String
  public var kind: Kind
  public var start: BootTime
  public var end: BootTime
  /// The IANA time zone at the start.
  public var zone: String
  /// Whether the period is still open: `end` is then the latest known time.
  public var isOpen = false
  /// Whether some of its blocks were dropped. The period is then never recomputed.
  public var isFrozen = false
  /// The figures that lists show, as a JSON object.
  public var summary = "{}"
  /// The wall-clock time (µs) of the start when the summary was written. The clock may have been corrected since.
  public var summaryStart: Int64 = 0
  /// Further details, as a JSON object. Lists of periods do not contain them.
  public var details = "{}"

  /// Creates a period.
  public init(device: String, kind: Kind, start: BootTime, end: BootTime, zone: String) {
    self.device = device
    self.kind = kind
    self.start = start
    self.end = end
    self.zone = zone
  }
}
