// charge: shows one recorded charging session.

import ArgumentParser

struct ChargeCommand: PeriodCommand {
  static let kind = PeriodTable.Kind.charge
  static let configuration = CommandConfiguration(
    commandName: "charge", abstract: "Show a charging session.",
    discussion: """
      Shows its figures with their error bounds, and power against state of charge. With --json: {"period":…,"pauses":[…],"curve":[…]} in \
      the units of vehicled-history(8).
      """)

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions
  @Argument(help: "The number of the charge (default: the latest one).")
  var number: Int?
}
