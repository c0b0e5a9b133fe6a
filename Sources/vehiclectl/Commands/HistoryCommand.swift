// history: commands that export, import and maintain recorded values. Without a subcommand, shows the status of the history service.

import ArgumentParser

struct HistoryCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "Export, import and maintain recorded values.",
    discussion: "Without a subcommand, show whether values are being recorded, and how much space they use.",
    subcommands: [
      HistoryStatusCommand.self, HistorySeriesCommand.self, HistoryExportCommand.self, HistoryImportCommand.self, HistoryCheckCommand.self,
      HistoryCompactCommand.self, HistoryRecutCommand.self, HistoryRenameCommand.self, HistoryDeleteCommand.self,
    ])

  @OptionGroup var common: CommonOptions
  @OptionGroup var history: HistoryOptions

  func perform(_ output: Output) throws { try HistoryStatusCommand.show(history, common, output) }
}
