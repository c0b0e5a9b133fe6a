// What is counted on a bus: frames, their rate, the load, error frames. Figures are computed once per second, and not while the bus is
// silent.

struct CANBusStatistics: Sendable {
  private static let interval: Nanoseconds = .second
  static let noBitRate = "the bit rate of the bus is not known; set bit-rate"
  static let noErrorFrames = "not reported by slcan adapters"

  private let bitRate: Int?
  private var frames = 0
  private var errorFrames = 0
  private var damagedLines = 0
  /// What was counted since the figures were computed, and when that was.
  private var (newFrames, newBits, since): (Int, Int, Instant) = (0, 0, 0)
  /// When the figures are computed next; nil if the rate is 0 and published.
  private(set) var nextUpdate: Instant?

  /// `bitRate` in bit/s; nil if it is not known.
  init(bitRate: Int?) { self.bitRate = bitRate }

  /// Publishes that nothing was counted yet.
  func start(reportsErrors: Bool, _ effects: inout Effects) {
    effects.publish(CANBusProperty.frames.rawValue, .int(frames))
    effects.publish(CANBusProperty.badMessages.rawValue, .int(damagedLines))
    if reportsErrors {
      effects.publish(CANBusProperty.errorFrames.rawValue, .int(errorFrames))
    } else {
      effects.withdraw(CANBusProperty.errorFrames.rawValue, Self.noErrorFrames)
    }
    if bitRate == nil { effects.withdraw(CANBusProperty.busLoad.rawValue, Self.noBitRate) }
  }

  /// Begins to measure the rate.
  mutating func linkCameUp(at now: Instant) { (newFrames, newBits, since, nextUpdate) = (0, 0, now, now &+ Self.interval) }
  mutating func linkWentDown() { nextUpdate = nil }

  mutating func count(_ frame: CANFrame, at now: Instant) {
    guard frame.kind != .error else { return errorFrames &+= 1 }
    if nextUpdate == nil { linkCameUp(at: now) }
    frames &+= 1
    newFrames &+= 1
    newBits &+= frame.maxBits
  }

  /// Publishes the figures if they are due. `damagedLines`: all lines that could not be read.
  mutating func update(damagedLines: Int, reportsErrors: Bool, at now: Instant, _ effects: inout Effects) {
    guard let nextUpdate, now >= nextUpdate else { return }
    let seconds = Double(max(now &- since, Self.interval)) / 1e9
    effects.publish(CANBusProperty.frameRate.rawValue, .int(Int((Double(newFrames) / seconds).rounded())))
    if let bitRate {
      let load = Double(newBits) / seconds / Double(bitRate) * 100
      effects.publish(CANBusProperty.busLoad.rawValue, .float(min((load * 10).rounded() / 10, 100)))
    }
    if newFrames > 0 { effects.publish(CANBusProperty.frames.rawValue, .int(frames)) }
    if reportsErrors { effects.publish(CANBusProperty.errorFrames.rawValue, .int(errorFrames)) }
    if damagedLines != self.damagedLines {
      self.damagedLines = damagedLines
      effects.publish(CANBusProperty.badMessages.rawValue, .int(damagedLines))
    }
    let isSilent = newFrames == 0
    (newFrames, newBits, since) = (0, 0, now)
    self.nextUpdate = isSilent ? nil : now &+ Self.interval
  }
}
