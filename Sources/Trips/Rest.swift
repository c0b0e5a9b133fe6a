// While no values arrive, the state of the device can show that the vehicle is not in use. A vehicle that rests, then has no link, and then
// rests again was used at most while there was no link.

struct Rest: Sendable {
  /// When the link was lost while the vehicle was resting, for the first time since the last values.
  private var end: Int64?
  /// Since when the vehicle has been resting again.
  private(set) var resumption: Int64?

  /// Handles a state of the device. The last values arrived at `lastDataAt`.
  mutating func update(_ old: DeviceState, _ new: DeviceState, at time: Int64, lastDataAt: Int64?) {
    if old.isRest, new == .down { (end, resumption) = (end(after: lastDataAt) ?? time, nil) }
    if !old.isRest, new.isRest { resumption = time }
  }

  /// The end of the rest that followed the last values.
  func end(after lastDataAt: Int64?) -> Int64? { end.flatMap { $0 > lastDataAt ?? .min ? $0 : nil } }

  mutating func forget() { (end, resumption) = (nil, nil) }
}

extension DeviceState {
  fileprivate var isRest: Bool { self == .resting || self == .silent }
}
