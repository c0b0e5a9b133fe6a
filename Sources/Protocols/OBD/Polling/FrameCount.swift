// The response-count digit at the end of a request: the adapter stops waiting after this number of frames, which makes 20 Hz possible. A wrong
// count loses frames. It is therefore learned from complete responses, dropped after any failure, and learned again after more of them.

struct FrameCount: Sendable {
  /// The number of complete responses from which the count is learned, by the number of times it was dropped.
  private static let requiredFullReplies = [1, 1, 16, 256]

  /// The number of frames to request, 1 to 15; nil: the adapter waits for its timeout.
  private(set) var frames: Int?
  /// The adapter does not support the digit.
  private var isUnsupported = false
  private var drops = 0
  private var fullReplies = 0

  /// Handles a complete response of this many frames.
  mutating func answered(frames needed: Int) {
    if let frames {
      if frames != needed { drop() }
    } else if !isUnsupported {
      fullReplies += 1
      if fullReplies >= Self.requiredFullReplies[min(drops, Self.requiredFullReplies.count - 1)], needed <= 15 { frames = needed }
    }
  }

  /// Forgets the count, because a request with it was not answered in full.
  mutating func drop() {
    frames = nil
    drops += 1
    fullReplies = 0
  }

  /// Disables the count, because the adapter does not support the digit.
  mutating func disable() {
    frames = nil
    isUnsupported = true
  }
}
