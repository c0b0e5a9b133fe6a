// The frame count (also called response count): a hex digit at the end of a request. After this number of frames, the adapter stops waiting
// for more. This makes 20 Hz possible, but a wrong count loses frames. The count is therefore learned from complete responses and dropped
// after any failure. After repeated drops, more complete responses are required to learn it again.

struct FrameCount: Sendable {
  /// The number of complete responses that are required to learn the count, by the number of times it was dropped.
  private static let requiredFullReplies = [1, 1, 16, 256]

  /// The number of frames to request, 1 to 15, or nil to let the adapter wait for its timeout.
  private(set) var frames: Int?
  /// Whether the adapter is known not to support the digit.
  private var isUnsupported = false
  private var drops = 0
  private var fullReplies = 0

  /// Records a complete response of this many frames.
  mutating func recordFullReply(frames received: Int) {
    if let frames {
      if frames != received { drop() }
    } else if !isUnsupported {
      fullReplies += 1
      if fullReplies >= Self.requiredFullReplies[min(drops, Self.requiredFullReplies.count - 1)], received <= 15 { frames = received }
    }
  }

  /// Drops the count, because a request was not answered in full. Only a request that carried the count makes it harder to learn.
  mutating func drop() {
    if frames != nil { drops += 1 }
    frames = nil
    fullReplies = 0
  }

  /// Disables the count, because the adapter does not support the digit.
  mutating func disable() {
    frames = nil
    isUnsupported = true
  }
}
