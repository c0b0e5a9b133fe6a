// The error for a damaged block, and the limits that bound how much memory a block can make its reader allocate.

/// The reason why a block cannot be read, and the part of the block that is affected.
public struct BlockError: Error, Equatable, Sendable, CustomStringConvertible {
  public var description: String

  /// Creates an error from the affected part of the block and the problem.
  public init(_ place: String, _ problem: String) {
    description = "\(place): \(problem)"
  }
}

/// A part of a block.
enum BlockPlace: CustomStringConvertible {
  case batch, head, content, times, reasons
  case rowSet(Int)
  case column(series: Int)

  var description: String {
    switch self {
    case .batch: "batch"
    case .head: "head of the block"
    case .content: "content of the block"
    case .times: "times"
    case .reasons: "reasons"
    case .rowSet(let set): "row set \(set)"
    case .column(let series): "column of series \(series)"
    }
  }
}

extension BlockError {
  init(_ place: BlockPlace, _ problem: String) { self.init(place.description, problem) }
}

/// The limits of a block. A writer splits data that exceeds them; a reader rejects it.
public enum BlockLimits {
  /// The maximum number of rows, that is, of distinct times.
  public static let rows = 1 << 20
  /// The maximum number of columns.
  public static let columns = 1 << 14
  /// The maximum size of all sections of a block before compression, in bytes.
  public static let size = 8 << 20
  /// The maximum number of zeros that are removed from the ends of times.
  static let zeros = 9
  /// The highest valid series ID.
  public static let series = Int(Int32.max)
}
