// What the user has chosen in `watch`: device, scroll position, filter, order. No I/O.

struct WatchView {
  enum Order: String, CaseIterable { case group, name, age, change }

  /// The name of the selected device, or nil for the first one.
  private(set) var device: String?
  /// The number of lines above the first visible one.
  private(set) var scroll = 0
  /// The text that the name or group of a value must contain, in lower case.
  private(set) var filter = ""
  /// Whether the filter is being typed.
  private(set) var isTyping = false
  private(set) var order = Order.group
  /// Whether to show statistics, and properties that the device does not report.
  private(set) var showsAll: Bool
  private(set) var showsHelp = false
  /// The scroll position of the values while the help is shown.
  private var scrollBeforeHelp = 0
  /// The state that is shown instead of the current one, and its time.
  private(set) var frozen: (model: WatchModel, now: Double, wall: Double)?
  /// The number of visible lines, and of all lines, of the last frame.
  private var page = (visible: 1, total: 0)

  init(showsAll: Bool = false) { self.showsAll = showsAll }

  /// Processes a key press; returns false if the user quits.
  mutating func handle(_ key: KeyPress, _ model: WatchModel, at now: Double, wall: Double) -> Bool {
    if isTyping {
      type(key)
      return true
    }
    switch key {
    case .character("q"), .character("Q"), .control("C"), .control("D"): return false
    case .up, .character("k"): scroll(by: -1)
    case .down, .character("j"), .enter: scroll(by: 1)
    case .pageUp, .control("B"): scroll(by: -page.visible)
    case .pageDown, .control("F"): scroll(by: page.visible)
    case .home, .character("g"): scroll = 0
    case .end, .character("G"): scroll(by: page.total)
    case _ where showsHelp: (showsHelp, scroll) = (false, scrollBeforeHelp)
    case .character("?"), .character("h"): (showsHelp, scrollBeforeHelp, scroll) = (true, scroll, 0)
    case .escape: (filter, scroll) = ("", 0)
    case .tab, .right: select(1, model)
    case .backTab, .left: select(-1, model)
    case .character(let digit) where ("1"..."9").contains(digit): select(index: Int(digit.value) - 0x31, model)
    case .character("/"): (isTyping, scroll) = (true, 0)
    case .character("s"):
      let orders = Order.allCases
      order = orders[((orders.firstIndex(of: order) ?? 0) + 1) % orders.count]
      scroll = 0
    case .character("a"): showsAll.toggle()
    case .character(" "): frozen = frozen == nil ? (model, now, wall) : nil
    default: break
    }
    return true
  }

  /// Records the size of the last frame, and keeps the scroll position within it.
  mutating func noteFrame(visible: Int, total: Int) {
    page = (max(1, visible), total)
    scroll = min(scroll, max(0, total - page.visible))
  }

  /// The position of the selected device; nil if there are no devices.
  func selected(of model: WatchModel) -> Int? {
    model.devices.isEmpty ? nil : model.devices.firstIndex { $0.device.name == device } ?? 0
  }

  /// Whether the row matches the filter, and would also be shown without a filter.
  func shows(_ row: PropertyRow) -> Bool {
    guard filter.isEmpty || row.name.contains(filter) || row.group.contains(filter) else { return false }
    return isRelevant(row)
  }

  /// Whether the row is shown if there is no filter: always with `showsAll`; otherwise, if it is not a statistic and the device reports it.
  func isRelevant(_ row: PropertyRow) -> Bool { showsAll || (row.rank < 4 && !row.isNotReported) }

  private mutating func scroll(by lines: Int) { scroll = min(max(0, scroll + lines), max(0, page.total - page.visible)) }

  private mutating func select(_ step: Int, _ model: WatchModel) {
    guard let position = selected(of: model) else { return }
    let count = model.devices.count
    select(index: (position + step + count) % count, model)
  }

  private mutating func select(index: Int, _ model: WatchModel) {
    guard model.devices.indices.contains(index) else { return }
    device = model.devices[index].device.name
    scroll = 0
  }

  private mutating func type(_ key: KeyPress) {
    scroll = 0
    switch key {
    case .character(let scalar) where filter.unicodeScalars.count < 40: filter.unicodeScalars += String(scalar).lowercased().unicodeScalars
    case .backspace where filter.isEmpty: isTyping = false
    case .backspace: filter.removeLast()
    case .control("U"): filter = ""
    case .enter, .up, .down, .tab: isTyping = false
    case .escape, .control("C"): (filter, isTyping) = ("", false)
    default: break
    }
  }
}
