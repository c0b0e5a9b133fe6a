// Parses the replies of the adapter, and detects an adapter that always omits the checksum.

struct ReplyParser: Sendable {
  private(set) var reader = ReplyReader()
  /// The number of replies that were complete except for the checksum; nil after a reply with a valid checksum.
  private var repliesWithoutChecksum: Int? = 0

  /// Parses the reply. `addressByte` begins each frame, unless it is nil. `learnsChecksums`: the reply answers a poll, and so shows whether
  /// the adapter omits checksums.
  mutating func parse(_ dialogue: ELMDialogue, addressByte: UInt8?, learnsChecksums: Bool) -> ReplyReader.Outcome {
    let outcome = reader.read(dialogue.reply, from: dialogue.bodyStart, addressByte: addressByte)
    guard learnsChecksums else { return outcome }
    if reader.checksums.hasValid {
      repliesWithoutChecksum = nil
      reader.expectChecksums(true)
    }
    guard !reader.omitsChecksums, reader.checksums.hasMissing, let missing = repliesWithoutChecksum else { return outcome }
    repliesWithoutChecksum = missing + 1
    guard missing >= 2 else { return outcome }
    reader.expectChecksums(false)
    return reader.read(dialogue.reply, from: dialogue.bodyStart)
  }
}
